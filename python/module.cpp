// The library as a module of Python: text in, text out. What people use is stratagem/__init__.py.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "api/stratagem.hpp"

namespace {

namespace py = pybind11;
using namespace stratagem;

/// An error with the place and what was expected there, as stratagem.Error has them.
void throw_in_python(std::exception_ptr thrown) {  // NOLINT: pybind11's form
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const api::Error& error) {
    const py::object type = py::module_::import("stratagem.errors").attr("Error");
    const py::object raised = type(error.what(), error.path, error.expected, error.found);
    PyErr_SetObject(type.ptr(), raised.ptr());
  }
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  py::register_exception_translator(&throw_in_python);
  const auto without_lock = py::call_guard<py::gil_scoped_release>();
  py::class_<api::Scenario>(module, "Scenario")
      .def(py::init<std::string, std::string, std::string>(), py::arg("text"), py::arg("folder"),
           py::arg("name"));
  py::class_<api::Asked>(module, "Asked")
      .def(py::init<>())
      .def_readwrite("set", &api::Asked::set)
      .def_readwrite("grid", &api::Asked::grid)
      .def_readwrite("run", &api::Asked::run)
      .def_readwrite("remedies", &api::Asked::remedies)
      .def_readwrite("why", &api::Asked::why)
      .def_readwrite("exact", &api::Asked::exact)
      .def_readwrite("unfolded", &api::Asked::unfolded)
      .def_readwrite("jobs", &api::Asked::jobs)
      .def_readwrite("tell", &api::Asked::tell);
  py::class_<api::Sought>(module, "Sought")
      .def(py::init<>())
      .def_readwrite("set", &api::Sought::set)
      .def_readwrite("least", &api::Sought::least)
      .def_readwrite("best", &api::Sought::best)
      .def_readwrite("why", &api::Sought::why)
      .def_readwrite("store", &api::Sought::store)
      .def_readwrite("jobs", &api::Sought::jobs)
      .def_readwrite("tell", &api::Sought::tell);
  py::class_<api::Compared>(module, "Compared")
      .def(py::init<>())
      .def_readwrite("figure", &api::Compared::figure)
      .def_readwrite("group", &api::Compared::group)
      .def_readwrite("jobs", &api::Compared::jobs)
      .def_readwrite("tell", &api::Compared::tell);
  py::class_<api::Predicted>(module, "Predicted")
      .def_readonly("json", &api::Predicted::json)
      .def_readonly("csv", &api::Predicted::csv);
  py::class_<api::Found>(module, "Found")
      .def_readonly("json", &api::Found::json)
      .def_readonly("plans", &api::Found::plans)
      .def_readonly("page", &api::Found::page);
  py::class_<api::Validated>(module, "Validated")
      .def_readonly("json", &api::Validated::json)
      .def_readonly("page", &api::Validated::page);
  module.def("simulate", &api::simulate, without_lock);
  module.def("simulated_page", &api::simulated_page, without_lock);
  module.def("search", &api::search, without_lock);
  module.def("validate", &api::validate, without_lock);
  module.def("import_files", &api::import_files, without_lock);
  module.def("names", &api::names);
  module.def("use_library", &api::use_library);
  module.def("version", &api::version);
}

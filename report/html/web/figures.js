// Figures as text: three or four digits and a unit.

function digits(value, count = 4) {
  if (value === 0) return "0";
  return Number(value.toPrecision(count)).toLocaleString("en", {maximumSignificantDigits: count});
}

// The unit of zero is `zero`.
function scaled(value, units, zero) {
  if (value === 0) return `0 ${zero}`;
  for (const [scale, unit] of units) {
    if (Math.abs(value) >= scale) return `${digits(value / scale)} ${unit}`;
  }
  const [scale, unit] = units[units.length - 1];
  return `${digits(value / scale)} ${unit}`;
}

const inSeconds = (value) =>
    scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]], "s");
const inBytes = (value) =>
    scaled(value, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]], "B");
const inRate = (value) =>
    scaled(value, [[1e18, "EFLOP/s"], [1e15, "PFLOP/s"], [1e12, "TFLOP/s"], [1, "FLOP/s"]],
           "FLOP/s");
const inPercent = (value) => `${(100 * value).toFixed(1)} %`;
const inNumber = (value) => digits(value);
const inWords = (name) => name.replaceAll("_", " ");

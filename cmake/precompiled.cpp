// Empty: what a target needs as a source in order to compile its precompiled header.

package bus

// wireVersion of a release to come: tests build processes with it, to see what those
// of today make of them.
const wireVersion = 2

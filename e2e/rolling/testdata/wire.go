package bus

// wireVersion is the version of a future release. Tests build processes with it, to check how
// current processes handle them.
const wireVersion = 2

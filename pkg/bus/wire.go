package bus

// wireVersion is the first byte of every message with frames. A reader rejects other versions.
// Adding fields does not require a new version.
const wireVersion = 1

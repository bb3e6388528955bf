package bus

// wireVersion is the first byte of every message with frames. A reader refuses
// other versions; fields can be added without changing it.
const wireVersion = 1

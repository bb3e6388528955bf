package bus

// CredentialNumber is the number of the [ReplySaid] frame with which a worker requests, during
// a call, the credential of the person behind the call. Requests of MCP servers never have this
// number. The router of the call responds with a [ControlAnswer]. Both payloads are encoded by
// package credential. A worker can request it for each call whose frames it can read, twice for
// each attempt.
const CredentialNumber = 1 << 40

package bus

// CredentialNumber is the number of the [ReplySaid] frame with which a worker asks, during a
// call, for the credential of the person behind it; no request of an MCP server has it. The
// router of the call answers with a [ControlAnswer]. Both hold what package credential writes.
// A worker can ask for each call whose frames it can read, twice for each attempt.
const CredentialNumber = 1 << 40

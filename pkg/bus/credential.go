package bus

// CredentialNumber is the number of the [ReplySaid] frame with which a worker asks, during a
// call, for the credential of the person behind it; no request of an MCP server has it. The
// router of the call answers with a [ControlAnswer]. Both hold what package credential writes.
// Only a worker that was given the call knows its number, so it can ask for no other.
const CredentialNumber = 1 << 40

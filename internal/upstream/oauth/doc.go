// Package oauth is an OAuth 2.1 client for the MCP specification, revision 2026-07-28
// (basic/authorization). It finds the authorization server of an MCP server, registers there, sends
// a person there with PKCE, redeems the code, and refreshes tokens. Programs obtain tokens with the
// client credentials grant.
//
// # Guarantees
//
//   - A secret is sent only to the authorization server it was registered with. If an MCP server
//     names another one, the result is an error. Registrations and tokens are bound to their
//     issuer.
//   - Requests follow no redirects and use https, or http to this machine. Addresses named by an
//     MCP server must be public, unless they are on the host of the MCP server or of the configured
//     issuer. The address is checked when connecting.
//   - The resource in the metadata must equal that of the request byte for byte (RFC 9728, section
//     3.3). The issuer in the metadata and in the response must be the expected one (RFC 8414,
//     section 3.3; RFC 9207). Without S256 there is no code flow.
//   - Errors hold no secrets, and nothing of a response except registered error codes.
//
// # Limits
//
// It stores nothing, retries nothing, and knows nothing of MCP except its metadata. Tokens that are
// not bearer tokens (DPoP) are rejected.
package oauth

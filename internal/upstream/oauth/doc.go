// Package oauth is the OAuth 2.1 client of the MCP specification, revision 2026-07-28
// (basic/authorization): it finds the authorization server of an MCP server, makes itself
// known to it, sends a person there with PKCE, redeems the code, and refreshes.
// Machines get tokens with the client credentials grant.
//
// # What it promises
//
//   - A secret goes to the authorization server that it was registered with, and to no
//     other: an MCP server that names another one gets an error. Registrations and tokens
//     are bound to their issuer.
//   - Requests follow no redirects, and use https, or http to this machine. What an MCP
//     server names is reached only at public addresses, unless it is on the host of the
//     MCP server or of the configured issuer. The address is checked when the connection is made.
//   - The resource in the metadata is that of the request, byte for byte (RFC 9728, section
//     3.3), the issuer in the metadata and in the answer is the one that was asked (RFC
//     8414, section 3.3; RFC 9207), and without S256 there is no code flow.
//   - Errors hold no secrets, and nothing of an answer but the registered error codes.
//
// # What it refuses
//
// It stores nothing, retries nothing, and knows nothing of MCP but its metadata. Tokens
// that are not bearer tokens (DPoP) are refused.
package oauth

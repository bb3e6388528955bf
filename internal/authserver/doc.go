// Package authserver is a small authorization server (OAuth 2.1) for installations without one that
// MCP clients can use. The approver signs people in and shows the pages. This package decides
// the access that a client may request, and issues tokens.
//
// # What it promises
//
//   - A code and a refresh token are redeemed once, even if several approvers are asked
//     concurrently. A second use ends the grant, and so its refresh tokens.
//   - A token is for the one resource that the client named and the person saw.
//   - Nobody is redirected to an address that the client has not registered, nor without a
//     person having pressed a button.
//   - Private keys and grants are stored encrypted, codes and refresh tokens as digests.
//
// # What it refuses
//
// Implicit, password and client-credentials grants, dynamic registration, PKCE other than S256,
// requests without a resource, and clients that are not registered, either in the configuration
// or by a client-id metadata document (draft-ietf-oauth-client-id-metadata-document).
//
// Its rules come from OAuth 2.1 (draft-ietf-oauth-v2-1), RFC 8414, 8707, 9068, 9207 and 9700.
package authserver

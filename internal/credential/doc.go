// Package credential stores the credentials that people have connected: for each person and MCP
// server, a grant of an authorization server or the person's own secret. Approvers write them,
// front doors use them.
//
// # What it promises
//
//   - Each row is encrypted with its own key, which an operator's key wraps (AES-256-GCM both).
//     The ciphertext is bound to the person, the server and the server's origin. A server that moves
//     to another origin gets no credential, and a copied row cannot be read in its new place.
//   - Of all processes that find a token expired, one redeems the refresh token. The others
//     wait and read the stored result. The new pair is stored before it is used.
//   - A person without a credential gets an error of KindConnectRequired, and never the
//     credential of another person.
//
// # What it refuses
//
// It keeps credentials in memory only while they are used, and never shows them. The exceptions are
// exchanged tokens, which are kept in memory until they expire, because no row has them. A caller's
// own token is held only by the request, and is sent only to the authorization server that
// exchanges it.
package credential

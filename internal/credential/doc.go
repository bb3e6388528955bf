// Package credential keeps what people have connected: for each person and MCP server a
// grant of an authorization server or a secret of the person's own. Approvers write it, front
// doors use it.
//
// # What it promises
//
//   - A row is encrypted with a key of its own, which a key of the operator wraps
//     (AES-256-GCM both). The ciphertext is bound to the person, the server and the server's
//     origin: a server that moves elsewhere gets nothing, and a row that is copied to another
//     place cannot be read there.
//   - Of all processes that find a token expired, one redeems the refresh token; the others
//     wait and read what it stored. The new pair is stored before it is used.
//   - A person without a credential gets an error of KindConnectRequired, and never the
//     credential of somebody else.
//
// # What it refuses
//
// It keeps no credential in memory longer than it takes to use it, and shows none. Only tokens
// that were exchanged for those of callers stay there until they end, because no row has them.
// A caller's own token is held by the request alone, and is sent to the authorization server
// that exchanges it and nowhere else.
package credential

// Package upstream adds credentials to a worker's requests to MCP servers. It implements the modes
// of "auth" in an entry of the servers file.
//
// # Guarantees
//
//   - A credential is sent only to the server of its entry: the HTTP client of package launch asks
//     for it after checking the origin, also for a redirect.
//   - A secret in a file is read again when the file changes, and one in Vault every 30 seconds.
//     Both are read at once when the server refuses them. A token is fetched once for all calls
//     that need it, kept until shortly before it expires, and replaced once when the server
//     responds with 401.
//   - Errors name the server and the fix, and hold no secret.
//
// # Limits
//
// It never sends the credential of a caller, which does not reach this package.
package upstream

// Package upstream gives the requests of a worker to MCP servers their credentials: the
// modes of "auth" in an entry of the servers file.
//
// # What it promises
//
//   - A credential is used for the server of its entry alone: the HTTP client of package
//     launch asks for it after it has checked the origin, also of a redirect.
//   - A secret in a file is read again when the file changes, one in Vault each half minute,
//     and both at once when the server refuses them. A token is fetched once for all calls that need it, kept until shortly
//     before it expires, and replaced once when the server answers 401.
//   - Errors name the server and what to correct, and hold no secret.
//
// # What it refuses
//
// It never sends the credential of a caller, which never gets this far.
package upstream

// Package keys implements the operations on API keys: list and show them, and create, change, rotate
// and revoke those that are created while the system runs.
//
// It owns conditional requests on keys: an entity tag names a revision, and a change that names
// another revision is refused. A secret is only in the answer to the request that created it, never
// in another answer or a log line. The package does not know what a key permits;
// internal/authn/issued does. The names of its types are the names of schemas in the OpenAPI
// document.
package keys

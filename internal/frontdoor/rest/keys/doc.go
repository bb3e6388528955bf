// Package keys has the operations on API keys: list and show them, make, change, rotate and
// revoke those that are made while the system runs.
//
// It owns conditional requests on keys: an entity tag names a revision, and a change that
// names another is refused. It promises that a secret is in the answer to the request that
// made it, and in no other, nor in a log line. It refuses to know what a key lets do;
// internal/authn/issued does. The names of its types are the names of schemas in the OpenAPI
// document.
package keys

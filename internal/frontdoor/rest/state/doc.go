// Package state implements the operations that export and import what operators have set up: sets
// of tools, disabled tools, accepted definitions, and, for comparison only, the policy and the API
// keys.
//
// An import changes only what the caller has seen: the request names the state that it changes, and
// a dry run reports the differences first. It accepts no definition that the server does not offer
// now, and creates no API keys, since an exported file contains no secrets. An import is not atomic:
// it reports what cannot be changed, and changes the rest. The names of its types are the names of
// schemas in the OpenAPI document.
package state

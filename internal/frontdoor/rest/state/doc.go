// Package state has the operations that export and import what operators have set up: sets of
// tools, what is disabled, accepted definitions, and, to compare only, the policy and the API
// keys.
//
// It promises that an import changes nothing that whoever asks has not seen: it names the state
// that it changes, and a dry run tells the differences first. It accepts no definition that the
// server does not offer now, and makes no API keys, since a file of the state has no secrets.
// An import is not atomic: what cannot be changed is named, and the rest is changed. The names
// of its types are the names of schemas in the OpenAPI document.
package state

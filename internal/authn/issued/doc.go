// Package issued manages the API keys that are created at run time: their format, owners and
// permissions, and how they are created, changed, rotated and revoked.
//
// It defines the secret (shown once; only its SHA-256 is stored), the rule that no principal can
// give a key more than it has, and the time of the last use, to the minute.
//
// Every front door applies a change within a second. While the store is unavailable, a known key is
// accepted, and an unknown key gets the error unavailable, never unauthenticated. Before a key is
// refused as unknown, the store is queried, within limits.
//
// The package knows only the names of configured keys, and does not know the requirements of
// operations.
package issued

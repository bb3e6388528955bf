// Package issued has the API keys that are made while the system runs: their form, who holds
// them, what each lets do, and how they are made, changed, rotated and revoked.
//
// It owns the secret (shown once; only its SHA-256 is stored), the rule that nobody gives a
// key more than they have, and the time of the last use, to the minute.
//
// It promises that every front door follows a change within a second, that a known key is
// taken while the store is away, and that an unknown one is then answered as unavailable,
// never as wrong. Before a key is called unknown, the store itself is asked, within limits.
//
// It refuses to know the keys of the configuration, but for their names, and to decide what
// an operation requires.
package issued

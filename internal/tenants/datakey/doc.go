// Package datakey encrypts what tenants have stored. Each tenant has a data key of its own,
// which the operator's key wraps; to delete a tenant is to destroy its data key.
//
// # What it promises
//
//   - What [Ring.Seal] returned can be opened for the same place only, with the data key of
//     the same tenant (XChaCha20-Poly1305).
//   - A data key is made when it is needed first; of all processes that make one at once one
//     wins, and the others take its key.
//   - [Ring.Destroy] has NATS overwrite the wrapped key. Every process that is connected drops
//     its copy within a second, and nothing that was sealed before can be opened by any
//     process from then on, whoever has the operator's key.
//   - What was stored before there were keys is returned as it is.
//
// # What it refuses
//
// It never makes another key for a tenant whose key it cannot unwrap: the operator would
// not notice that the old one is missing. It does not know what the bytes are.
package datakey

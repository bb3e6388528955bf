// Package datakey encrypts stored data of tenants. Each tenant has a data key, wrapped by the
// operator's key. Destroying its data key deletes the data of a tenant.
//
// # Guarantees
//
//   - The output of [Ring.Seal] can be opened only for the same place, with the data key of the
//     same tenant (XChaCha20-Poly1305).
//   - A data key is created at its first use. Of several processes that create one at the same
//     time, one succeeds, and the others use its key.
//   - [Ring.Destroy] makes NATS overwrite the wrapped key. Every connected process drops its copy
//     within a second. From then on no process can open data sealed before, even with the
//     operator's key.
//   - Data stored before there were keys is returned unchanged.
//
// # Limits
//
// It never creates another key for a tenant whose key it cannot unwrap, because the operator would
// not notice that the old key is missing. It does not interpret the bytes.
package datakey

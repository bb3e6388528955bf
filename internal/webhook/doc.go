// Package webhook notifies receivers over HTTP of the end of a call with a callback_url, of a
// batch, or of an approval. It is an outbox: [Sender.Send] stores a delivery in JetStream until a
// receiver accepts it or it is given up.
//
// A delivery survives the process that accepted it, is attempted by one process at a time, and is
// retried by a schedule with the same id. A dead delivery is kept with its reason until an operator
// retries it or it expires. A slow receiver hardly delays the others, and no receiver can fill the
// outbox alone.
//
// A request is signed according to Standard Webhooks 1.0 with every secret, so that secrets can be
// rotated. Delivery is at least once: a receiver drops duplicates by the header webhook-id.
//
// The package does not connect to internal networks. [CheckURL] rejects what the URL shows, and
// each connection checks the resolved address, so a name that resolves differently later gains
// nothing. It follows no redirect, uses no proxy, and keeps only the status of a response. It never
// logs a URL, a body or a secret.
package webhook

// Package webhook tells receivers over HTTP how something ended: a call with a
// callback_url, a batch, an approval. It is an outbox: what [Sender.Send] took is
// kept on JetStream until a receiver took it or it was given up.
//
// It promises that a delivery outlives the process that accepted it, is made by
// one process at a time, is tried again by a schedule with the same id each time,
// and that one that is given up stays, with the reason, until somebody sends it
// again or it grows old. A slow receiver delays the others little, and none can
// fill the outbox alone.
//
// A request is signed as Standard Webhooks 1.0 says, with every secret, so that
// secrets can be rotated. Delivery is at least once: a receiver drops what it has
// by the header webhook-id.
//
// It refuses to reach into the inner network. [CheckURL] refuses what can be seen
// from the address; what a name stands for is looked at in the moment of each
// connection, so a name that changes its mind gains nothing. No redirect is
// followed, no proxy is used, and nothing that a receiver answers is kept but its
// status. It never logs a URL, a body or a secret.
package webhook

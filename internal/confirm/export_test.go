package confirm

import "context"

// Probe asks Redis whether it takes tokens, as a gate does every few seconds.
func (r *Redis) Probe(ctx context.Context) { r.probe(ctx) }

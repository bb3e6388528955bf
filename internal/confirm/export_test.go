package confirm

import "context"

// Probe checks whether Redis accepts tokens, as a gate does every few seconds.
func (r *Redis) Probe(ctx context.Context) { r.probe(ctx) }

package bus

// GiveUp ends the subscription of the watch as the client does that gives it up.
func (r *Records[T]) GiveUp() error {
	r.watch.mu.Lock()
	sub := r.watch.sub
	r.watch.mu.Unlock()
	return sub.Unsubscribe()
}

// Publish sends a message of core NATS.
func (c *Conn) Publish(subject string, data []byte) error { return c.nc.Publish(subject, data) }

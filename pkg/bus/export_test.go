package bus

// GiveUp ends the subscription of the watch, as nats.go does when it gives up.
func (t *Table[T]) GiveUp() error {
	t.watch.mu.Lock()
	sub := t.watch.sub
	t.watch.mu.Unlock()
	return sub.Unsubscribe()
}

// Publish publishes a message of core NATS.
func (c *Conn) Publish(subject string, data []byte) error { return c.nc.Publish(subject, data) }

package bus

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/pkg/schema"
)

// Announce tells all routers what this worker has. A worker announces itself
// each second, on every change, and when a router says hello.
func (c *Conn) Announce(w *schema.Worker) error {
	said := *w
	said.Wire = wireVersion
	body, err := json.Marshal(&said)
	if err != nil {
		return fmt.Errorf("encoding the announcement: %w", err)
	}
	if err := c.nc.Publish(subjectWorker+Token(w.ID), body); err != nil {
		return fmt.Errorf("announcing the worker: %w", err)
	}
	return nil
}

// headerInForce carries the configuration of a router or approver with its sign of life;
// the body stays the id, which is all that older routers know.
const headerInForce = "Callyard-In-Force"

// AnnounceRouter tells the other routers that this one is here, and which configuration
// it goes by.
func (c *Conn) AnnounceRouter(id string, inForce []schema.InForce) error {
	return c.announce(subjectRouter, "router", id, inForce)
}

// AnnounceApprover tells the routers that this approver is here, and which configuration
// it goes by. An approver announces itself each second.
func (c *Conn) AnnounceApprover(id string, inForce []schema.InForce) error {
	return c.announce(subjectApprover, "approver", id, inForce)
}

func (c *Conn) announce(subject, role, id string, inForce []schema.InForce) error {
	m := nats.NewMsg(subject + Token(id))
	m.Data = []byte(id)
	if len(inForce) > 0 {
		text, err := json.Marshal(inForce)
		if err != nil {
			return fmt.Errorf("encoding the configuration of the %s: %w", role, err)
		}
		m.Header.Set(headerInForce, string(text))
	}
	if err := c.nc.PublishMsg(m); err != nil {
		return fmt.Errorf("announcing the %s: %w", role, err)
	}
	return nil
}

// Hello asks all workers to announce themselves now.
func (c *Conn) Hello() error {
	if err := c.nc.Publish(subjectHello, nil); err != nil {
		return fmt.Errorf("asking for announcements: %w", err)
	}
	return nil
}

// Watch is a running subscription; Stop ends it.
type Watch struct{ subs []*nats.Subscription }

// listen begins a watch of a subject; of says for people what is watched.
func (c *Conn) listen(of, subject string, f nats.MsgHandler) (*Watch, error) {
	s, err := c.subscribe(subject, "", f)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", of, err)
	}
	return &Watch{subs: []*nats.Subscription{s}}, nil
}

// Stop ends the watch. A callback may still be running when it returns.
func (w *Watch) Stop() {
	for _, s := range w.subs {
		_ = s.Unsubscribe() // it fails only when the connection is closed, which ends it too
	}
}

// WatchPresence calls worker for each announcement of a worker and router for
// each sign of life of a router. Announcements that cannot be read are logged.
// Calls to worker come one after the other, and so do calls to router.
func (c *Conn) WatchPresence(worker func(*schema.Worker), router func(id string, inForce []schema.InForce)) (*Watch, error) {
	w, err := c.listen("workers", subjectWorker+"*", func(m *nats.Msg) {
		var a schema.Worker
		if err := json.Unmarshal(m.Data, &a); err != nil {
			c.log.Error("an announcement cannot be read", "subject", m.Subject, "error", err)
			return
		}
		if Token(a.ID) != LastToken(m.Subject) {
			c.log.Error("a worker announced another worker's name; ignored", "subject", m.Subject)
			return
		}
		understand(&a)
		worker(&a)
	})
	if err != nil {
		return nil, err
	}
	routers, err := c.listen("routers", subjectRouter+"*", c.signOfLife(router))
	if err != nil {
		w.Stop()
		return nil, err
	}
	w.subs = append(w.subs, routers.subs...)
	return w, nil
}

// WatchApprovers calls f for each sign of life of an approver, one after the other.
func (c *Conn) WatchApprovers(f func(id string, inForce []schema.InForce)) (*Watch, error) {
	return c.listen("approvers", subjectApprover+"*", c.signOfLife(f))
}

func (c *Conn) signOfLife(f func(id string, inForce []schema.InForce)) nats.MsgHandler {
	return func(m *nats.Msg) {
		var inForce []schema.InForce
		if text := m.Header.Get(headerInForce); text != "" {
			if err := json.Unmarshal([]byte(text), &inForce); err != nil {
				c.log.Debug("the configuration that a process announced cannot be decoded", "subject", m.Subject, "error", err)
			}
		}
		f(string(m.Data), inForce)
	}
}

// understand marks what a worker of another wire version has as out of reach, so that
// nothing is sent there. A worker that names none speaks the first one.
func understand(w *schema.Worker) {
	if max(w.Wire, 1) == wireVersion {
		return
	}
	for i := range w.Servers {
		s := &w.Servers[i]
		s.State, s.Slots, s.OtherVersion = schema.StateError, 0, true
		s.Error = fmt.Sprintf("Worker %s uses version %d of the bus protocol, this front door version %d: upgrade the older one.", w.ID, max(w.Wire, 1), wireVersion)
	}
}

// WatchHello calls f when a router asks for announcements.
func (c *Conn) WatchHello(f func()) (*Watch, error) {
	return c.listen("for routers", subjectHello, func(*nats.Msg) { f() })
}

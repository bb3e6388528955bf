package bus

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/callyard/callyard/pkg/schema"
)

// Announce publishes the state of this worker to all routers. A worker announces itself each
// second, on every change, and when a router requests it with [Conn.Hello].
func (c *Conn) Announce(w *schema.Worker) error {
	announced := *w
	announced.Wire = wireVersion
	body, err := json.Marshal(&announced)
	if err != nil {
		return fmt.Errorf("encoding the announcement: %w", err)
	}
	if len(body) > c.MaxPayload() {
		// Without an announcement, none of the worker's servers could be used. The stderr of
		// failed servers is the largest part, and the only one that is not needed.
		announced.Servers = slices.Clone(announced.Servers)
		for i := range announced.Servers {
			announced.Servers[i].StderrTail = ""
		}
		if body, err = json.Marshal(&announced); err != nil {
			return fmt.Errorf("encoding the announcement: %w", err)
		}
		if most := c.MaxPayload(); len(body) > most {
			return fmt.Errorf("the announcement of the worker has %d bytes, and max_payload of NATS is %d: raise it, or split the servers over several workers", len(body), most)
		}
	}
	if err := c.nc.Publish(subjectWorker+Token(w.ID), body); err != nil {
		return fmt.Errorf("announcing the worker: %w", err)
	}
	return nil
}

// headerInForce is the header with the effective configuration of a router or approver. The
// body of the announcement remains the id, because older routers know nothing else.
const headerInForce = "Callyard-In-Force"

// headerFrontDoor is the header with the properties and the load of a front door. It is a header
// for the same reason.
const headerFrontDoor = "Callyard-Front-Door"

// headerSigner is the header with the id of the key with which an approver signs warrants.
const headerSigner = "Callyard-Signer"

// AnnounceRouter announces this front door to the other routers, with its effective configuration
// and its load.
func (c *Conn) AnnounceRouter(d *schema.FrontDoor) error {
	is, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encoding the announcement of the front door: %w", err)
	}
	return c.announce(subjectRouter, "router", d.ID, d.InForce, headerFrontDoor, string(is))
}

// AnnounceApprover announces this approver to the routers, with its effective configuration and the id
// of the key with which it signs warrants, or schema.NoSigner. An approver announces itself each second.
func (c *Conn) AnnounceApprover(id string, inForce []schema.InForce, signer string) error {
	return c.announce(subjectApprover, "approver", id, inForce, headerSigner, signer)
}

// announce publishes a heartbeat. headers are pairs of name and value.
func (c *Conn) announce(subject, role, id string, inForce []schema.InForce, headers ...string) error {
	m := nats.NewMsg(subject + Token(id))
	m.Data = []byte(id)
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] != "" {
			m.Header.Set(headers[i], headers[i+1])
		}
	}
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

// listen subscribes to a subject. of describes the messages for people.
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

// WatchPresence calls worker for each announcement of a worker and router for each heartbeat of
// a router. It logs announcements that cannot be decoded. Calls to worker are sequential, and so
// are calls to router.
func (c *Conn) WatchPresence(worker func(*schema.Worker), router func(*schema.FrontDoor)) (*Watch, error) {
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
		markOtherVersion(&a)
		worker(&a)
	})
	if err != nil {
		return nil, err
	}
	routers, err := c.listen("routers", subjectRouter+"*", func(m *nats.Msg) {
		d := &schema.FrontDoor{}
		readHeader(c.log, m, headerFrontDoor, d)
		c.signOfLife(func(id string, inForce []schema.InForce) { d.ID, d.InForce = id, inForce })(m)
		router(d)
	})
	if err != nil {
		w.Stop()
		return nil, err
	}
	w.subs = append(w.subs, routers.subs...)
	return w, nil
}

// WatchApprovers calls f for each heartbeat of an approver, one at a time. signer is "" if the approver
// runs an older version that does not announce it.
func (c *Conn) WatchApprovers(f func(id string, inForce []schema.InForce, signer string)) (*Watch, error) {
	return c.listen("approvers", subjectApprover+"*", func(m *nats.Msg) {
		c.signOfLife(func(id string, inForce []schema.InForce) { f(id, inForce, m.Header.Get(headerSigner)) })(m)
	})
}

func (c *Conn) signOfLife(f func(id string, inForce []schema.InForce)) nats.MsgHandler {
	return func(m *nats.Msg) {
		var inForce []schema.InForce
		readHeader(c.log, m, headerInForce, &inForce)
		f(string(m.Data), inForce)
	}
}

// readHeader decodes a header of a heartbeat, if present. A header that cannot be decoded belongs
// to another version. It is ignored, because the process is alive in any case.
func readHeader(log *slog.Logger, m *nats.Msg, name string, to any) {
	text := m.Header.Get(name)
	if text == "" {
		return
	}
	if err := json.Unmarshal([]byte(text), to); err != nil {
		log.Debug("a header that a process announced cannot be decoded", "subject", m.Subject, "header", name, "error", err)
	}
}

// markOtherVersion marks the servers of a worker with another wire version as unreachable, so that no
// call is sent to them. A worker without a version uses the first one.
func markOtherVersion(w *schema.Worker) {
	if max(w.Wire, 1) == wireVersion {
		return
	}
	for i := range w.Servers {
		s := &w.Servers[i]
		s.State, s.Slots, s.OtherVersion = schema.StateError, 0, true
		s.Error = fmt.Sprintf("Worker %s uses version %d of the bus protocol, this front door version %d: upgrade the older one.", w.ID, max(w.Wire, 1), wireVersion)
	}
}

// WatchHello calls f each time a router requests announcements.
func (c *Conn) WatchHello(f func()) (*Watch, error) {
	return c.listen("for routers", subjectHello, func(*nats.Msg) { f() })
}

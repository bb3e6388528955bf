package box

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/launch"
	"github.com/callyard/callyard/internal/launch/egress"
)

// DefaultRelay is the image of the relay where [Options.Relay] names none.
const DefaultRelay = "callyard/relay:local"

// What a relay may use: it carries bytes and decides nothing.
const (
	relayMemory = 64 << 20
	relayPIDs   = 64
	relayReady  = 20 * time.Second
)

// egress reads the list of places that the box may reach.
func (r *resolver) egress() egress.List {
	c := r.config
	if len(c.Egress) == 0 {
		return egress.List{}
	}
	list, faults := egress.Parse(c.Egress)
	for _, err := range faults {
		r.faults.add("egress", "%s", err.Error())
	}
	for _, text := range list.Private() {
		if list.Never(text) {
			r.faults.add("egress", "%q is an address that no box reaches, such as those where clouds hand out credentials; remove it.", text)
		} else {
			r.widens("egress", "private:"+text, "%q is in a private network, where others trust who comes from inside; remove it.", text)
		}
	}
	for _, name := range c.Allow {
		// Only looking a name up shows that its address is private.
		text, ok := strings.CutPrefix(name, "private:")
		if ok && list.AllowPrivate(text) && !slices.Contains(r.widened, name) {
			r.widened = append(r.widened, name)
		}
	}
	if c.Network != "" && c.Network != "none" {
		r.faults.add("egress", "a network of its own would lead past the list; remove \"network\" or \"egress\".")
	}
	switch name, _, _ := strings.Cut(c.Runtime, "-"); name {
	case "runsc", "io.containerd.runsc.v1", "kata", "io.containerd.kata.v2":
		r.faults.add("egress", "with the runtime %q each container has a network stack of its own, where the way out cannot be put in; remove \"runtime\" or \"egress\".", c.Runtime)
	}
	return list
}

// pinRelay looks the relay's image up, for a Spec that needs one.
func (e *Engine) pinRelay(ctx context.Context, s *Spec) error {
	relay, err := Resolve(s.Server, Config{Image: cmp.Or(e.o.Relay, DefaultRelay), Memory: relayMemory, PIDs: relayPIDs, Runtime: s.host.Runtime})
	if err != nil {
		return launch.Failed("The image of the relay, %q, cannot be used (%w).", e.o.Relay, err)
	}
	relay.Time = s.Time + time.Minute // the box ends first
	if relay, err = e.Pin(ctx, relay); err != nil {
		return launch.Failed("The server %q may reach some places, and for that the engine needs the relay's image, which deploy/images/build.sh relay makes (%w).", s.Server, err)
	}
	s.relay = &relay
	return nil
}

// exit is the way out of one box: a relay in a container of its own, whose network
// the box shares, and the proxy that the relay's connections come to. That network
// is loopback alone.
type exit struct {
	container *Container
	tunnel    *egress.Tunnel
	proxy     *egress.Proxy
	work      sync.WaitGroup
}

// openExit starts the way out of a box that is about to be made. The error is a
// *schema.Error; then nothing is left.
func (e *Engine) openExit(ctx context.Context, s *Spec) (*exit, error) {
	c, err := e.create(ctx, s.relay, nil, false)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, relayReady)
	defer cancel()
	tunnel, err := egress.OpenTunnel(waiting, c.Stdin, c.Stdout)
	if err != nil {
		c.Stop(0)
		return nil, launch.Failed("The relay of the server %q did not become ready: %w; the container %v, the end of its stderr: %q.", s.Server, err, c.Err(), c.StderrTail())
	}
	var decided func(bool)
	if e.o.Egress != nil {
		decided = func(allowed bool) { e.o.Egress(s.Server, allowed) }
	}
	x := &exit{container: c, tunnel: tunnel, proxy: egress.New(egress.Options{Server: s.Server, List: s.egress, Decided: decided, Log: e.log})}
	x.work.Go(func() { x.proxy.Serve(tunnel) })
	return x, nil
}

// close ends every connection and the relay, and waits for both. It does nothing
// for a box without a way out.
func (x *exit) close() {
	if x == nil {
		return
	}
	x.container.kill("was stopped with its box")
	_ = x.tunnel.Close() // it does not fail
	x.proxy.Close()
	x.work.Wait()
	x.container.Stop(0)
}

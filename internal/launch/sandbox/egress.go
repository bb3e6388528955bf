package sandbox

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

// DefaultForwarder is the image of the forwarder if [Options.Forwarder] is empty.
const DefaultForwarder = "callyard/egress-forwarder:local"

// Limits of a forwarder. It copies bytes and makes no decisions.
const (
	forwarderMemory = 64 << 20
	forwarderPIDs   = 64
	forwarderReady  = 20 * time.Second
)

// egress reads the list of allowed destinations.
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
			r.faults.add("egress", "%q is an address that sandboxes are never allowed to reach, such as cloud metadata services; remove it.", text)
		} else {
			r.widens("egress", "private:"+text, "%q is in a private network, whose hosts may trust connections from inside; remove it.", text)
		}
	}
	for _, name := range c.Allow {
		// Whether an address is private is known only after resolving the name.
		text, ok := strings.CutPrefix(name, "private:")
		if ok && list.AllowPrivate(text) && !slices.Contains(r.widened, name) {
			r.widened = append(r.widened, name)
		}
	}
	if c.Network != "" && c.Network != "none" {
		r.faults.add("egress", "its own network would bypass the list; remove \"network\" or \"egress\".")
	}
	switch name, _, _ := strings.Cut(c.Runtime, "-"); name {
	case "runsc", "io.containerd.runsc.v1", "kata", "io.containerd.kata.v2":
		r.faults.add("egress", "with the runtime %q each container has its own network stack, which cannot use the egress proxy; remove \"runtime\" or \"egress\".", c.Runtime)
	}
	return list
}

// pinForwarder looks up the image of the forwarder for a Spec that needs one.
func (e *Engine) pinForwarder(ctx context.Context, s *Spec) error {
	forwarder, err := Resolve(s.Server, Config{Image: cmp.Or(e.o.Forwarder, DefaultForwarder), Memory: forwarderMemory, PIDs: forwarderPIDs, Runtime: s.host.Runtime})
	if err != nil {
		return launch.Failed("The image of the forwarder, %q, cannot be used (%w).", e.o.Forwarder, err)
	}
	forwarder.Time = s.Time + time.Minute // the sandbox ends before it
	if forwarder, err = e.Pin(ctx, forwarder); err != nil {
		return launch.Failed("Server %q has an egress list, which requires the forwarder image in the engine; create it with deploy/images/build.sh egress-forwarder, or set worker.sandboxes.forwarder to an image that is there (%w).", s.Server, err)
	}
	s.forwarder = &forwarder
	return nil
}

// exit is the egress of one sandbox: a forwarder in another container, whose network (loopback
// only) the sandbox shares, and the proxy that receives the forwarder's connections.
type exit struct {
	container *Container
	tunnel    *egress.Tunnel
	proxy     *egress.Proxy
	work      sync.WaitGroup
}

// openExit starts the egress before its sandbox is created. The error is a *schema.Error; nothing
// is left behind then.
func (e *Engine) openExit(ctx context.Context, s *Spec) (*exit, error) {
	c, err := e.create(ctx, s.forwarder, nil, false)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, forwarderReady)
	defer cancel()
	tunnel, err := egress.OpenTunnel(waiting, c.Stdin, c.Stdout)
	if err != nil {
		c.Stop(0)
		return nil, launch.Failed("The forwarder of the server %q did not become ready: %w; the container %v, its last output on stderr: %q.", s.Server, err, c.Err(), c.StderrTail())
	}
	var decided func(bool)
	if e.o.Egress != nil {
		decided = func(allowed bool) { e.o.Egress(s.Server, allowed) }
	}
	x := &exit{container: c, tunnel: tunnel, proxy: egress.New(egress.Options{Server: s.Server, List: s.egress, Decided: decided, Log: e.log})}
	x.work.Go(func() { x.proxy.Serve(tunnel) })
	return x, nil
}

// close ends every connection and the forwarder, and waits for both. It does nothing for a sandbox
// without egress.
func (x *exit) close() {
	if x == nil {
		return
	}
	x.container.kill("was stopped with its sandbox")
	_ = x.tunnel.Close() // it cannot fail
	x.proxy.Close()
	x.work.Wait()
	x.container.Stop(0)
}

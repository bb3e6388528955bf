package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/callyard/callyard/internal/launch"
)

// Start starts a container of a pinned Spec with stdin and stdout connected. It waits for a free
// place until ctx ends. The caller must call [Container.Stop] in the end, even if the container
// ended by itself. The container is killed some time after the start unless [Container.Limit] sets
// a time. The error is a *schema.Error; nothing runs then.
func (e *Engine) Start(ctx context.Context, s Spec) (*Container, error) {
	if s.imageID == "" {
		return nil, launch.Failed("The container of server %q was not prepared: its image was not checked.", s.Server)
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, launch.Unavailable("The container of the server %q was not started: the worker is shutting down.", s.Server)
	}
	e.starting.Add(1)
	e.mu.Unlock()
	defer e.starting.Done()

	if err := e.place(ctx, e.total, &s); err != nil {
		return nil, err
	}
	if err := e.place(ctx, e.starts, &s); err != nil {
		<-e.total
		return nil, err
	}
	c, err := e.start(&s)
	<-e.starts
	return c, err
}

// place occupies a place, or returns an error when the caller gives up.
func (e *Engine) place(ctx context.Context, places chan struct{}, s *Spec) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return launch.Unavailable("No container was available for server %q in time; this worker runs at most %d containers.", s.Server, e.o.Limits.Containers)
	case <-e.ctx.Done():
		return launch.Unavailable("The container of the server %q was not started: the worker is shutting down.", s.Server)
	}
}

// firstUser and users are the range of user ids of containers. A separate id for each container
// separates what the kernel counts per user.
const (
	firstUser = 40000
	users     = 20000
)

// start occupies a place of the total, which the container's owner releases.
func (e *Engine) start(s *Spec) (*Container, error) {
	ctx, cancel := context.WithTimeout(e.ctx, opTimeout)
	defer cancel()
	var way *exit
	if s.forwarder != nil {
		var err error
		if way, err = e.openExit(ctx, s); err != nil {
			<-e.total
			return nil, err
		}
	}
	return e.create(ctx, s, way, true)
}

// create creates and starts one container. After an error nothing is left, including the egress.
// counted means that it occupies a place of the total.
func (e *Engine) create(ctx context.Context, s *Spec, way *exit, counted bool) (_ *Container, err error) {
	owned := false
	defer func() {
		if !owned {
			way.close()
			if counted {
				<-e.total
			}
		}
	}()
	began := time.Now()
	n := e.count.Add(1)
	c := &Container{
		engine: e, spec: s, way: way, counted: counted, name: "callyard-" + e.o.Owner + "-" + strconv.Itoa(int(n)),
		done: make(chan struct{}), oom: make(chan struct{}), doomC: make(chan struct{}),
	}
	config, host := s.config, s.host
	if host.Mounts, err = s.mountsNow(); err != nil {
		return nil, err
	}
	config.Image, config.User = s.imageID, s.user
	if config.User == "" {
		uid := strconv.Itoa(firstUser + int(n%users))
		config.User = uid + ":" + uid
	}
	if way != nil { // the network of the forwarder is loopback only, and a host name needs a network
		host.NetworkMode, config.Hostname = container.NetworkMode("container:"+way.container.id), ""
	}
	host.Tmpfs = ownedBy(s.host.Tmpfs, config.User)
	config.Labels = map[string]string{
		labelOwner: e.o.Owner, labelScope: e.o.Scope, labelServer: s.Server,
		labelDeadline: strconv.FormatInt(began.Add(maxIdle+s.Time).Unix(), 10),
	}
	defer e.began(c.name)()
	created, err := e.client.ContainerCreate(ctx, client.ContainerCreateOptions{Config: &config, HostConfig: &host, Name: c.name})
	if err != nil {
		e.abandon(c.name) // the engine may have created it nevertheless
		return nil, e.startFault(s, "created", err)
	}
	c.id = created.ID
	for _, warning := range created.Warnings {
		e.log.Warn("the engine reports a warning for a container", "server", s.Server, "warning", warning)
	}

	stdin, output, err := e.attach(ctx, c.id)
	if err != nil {
		e.abandon(c.name)
		return nil, e.startFault(s, "connected", err)
	}
	stdout, pipe, err := os.Pipe()
	if err != nil {
		stdin.conn.Close()
		e.abandon(c.name)
		return nil, e.startFault(s, "connected", err)
	}
	c.Stdin, c.Stdout, c.conn = stdin, stdout, stdin.conn
	c.tail = launch.NewTail(e.log.With("server", s.Server, "container", c.name), s.env)
	waiting, stopWaiting := context.WithCancel(context.Background())
	end := e.client.ContainerWait(waiting, c.id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	c.timer = time.AfterFunc(s.Time+maxIdle, func() { c.kill("was killed because it was never used") })
	e.mu.Lock()
	e.live[c.name] = c
	e.mu.Unlock()
	owned = true
	e.work.Go(func() { c.own(end, stopWaiting, output, pipe) })

	if _, err := e.client.ContainerStart(ctx, c.id, client.ContainerStartOptions{}); err != nil {
		c.kill("did not start")
		<-c.done
		c.Stdout.Close()
		return nil, e.startFault(s, "started", err)
	}
	if err := s.stillThere(host.Mounts); err != nil {
		c.kill("was removed before its use")
		<-c.done
		c.Stdout.Close()
		return nil, err
	}
	if e.ctx.Err() != nil { // Close did not see it among the live ones
		c.kill("was killed because the worker is shutting down")
	}
	e.log.Debug("container started", "server", s.Server, "container", c.name, "took", time.Since(began))
	return c, nil
}

// began records that a container is being created. made ends that state when the container is held
// or given up. A slow engine lists the container for seconds before this process knows more than
// its name.
func (e *Engine) began(name string) (made func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.making[name] = true
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.making, name)
	}
}

// ownedBy gives file systems in memory to the user. Otherwise the runtime copies the permissions
// that the image sets on the covered folders.
func ownedBy(tmpfs map[string]string, user string) map[string]string {
	uid, gid, _ := strings.Cut(user, ":")
	out := make(map[string]string, len(tmpfs))
	for target, options := range tmpfs {
		out[target] = options + ",uid=" + uid + ",gid=" + cmp.Or(gid, uid)
	}
	return out
}

func (e *Engine) startFault(s *Spec, what string, err error) error {
	var dial *net.OpError
	if client.IsErrConnectionFailed(err) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &dial) {
		return unreachable(e.about.Host, err)
	}
	if cerrdefs.IsNotFound(err) {
		return launch.Failed("The container of the server %q could not be %s: the engine at %s no longer has its image %q; load it there and restart the server with `callyard servers restart %s` (%w).", s.Server, what, e.about.Host, s.Image, s.Server, err)
	}
	return launch.Failed("The container of the server %q could not be %s: %w; see the engine's log.", s.Server, what, err)
}

// attach connects to the streams of a container before it is started.
func (e *Engine) attach(ctx context.Context, id string) (*stdin, io.Reader, error) {
	line := &held{}
	stop := context.AfterFunc(ctx, line.close)
	defer stop()
	got, err := e.client.ContainerAttach(context.WithValue(ctx, heldKey{}, line), id,
		client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, nil, err
	}
	return &stdin{conn: got.Conn}, got.Reader, nil
}

// stdin is the standard input side of the connection to a container.
type stdin struct {
	conn net.Conn
	once sync.Once
}

func (s *stdin) Write(p []byte) (int, error) { return s.conn.Write(p) }

// Close ends the container's standard input. Output still arrives.
func (s *stdin) Close() error {
	err := os.ErrClosed
	s.once.Do(func() {
		err = nil
		if half, ok := s.conn.(client.CloseWriter); ok {
			err = half.CloseWrite()
		}
	})
	return err
}

// SyscallConn allows non-blocking writes. It fails over TLS.
func (s *stdin) SyscallConn() (syscall.RawConn, error) {
	if conn, ok := s.conn.(syscall.Conn); ok {
		return conn.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

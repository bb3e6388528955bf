package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// host is a machine of the fleet: a network namespace whose only link is a
// device that the lan reads and writes. It has no name, so it disappears with its last
// process and this one.
type host struct {
	at    address
	space *os.File
	wire  *os.File // to the lan
}

// newHost creates a machine at the address. It needs root.
func newHost(ctx context.Context, at address) (*host, error) {
	h := &host{at: at}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends in its new namespace
		made <- h.make(ctx)
	}()
	if err := <-made; err != nil {
		return nil, errors.Join(fmt.Errorf("making a host of the lan: %w", err), h.close())
	}
	return h, nil
}

const deviceName = "lan0"

// make runs on the thread that moves to the new namespace.
func (h *host) make(ctx context.Context) (err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network namespace: %w", err)
	}
	if h.space, err = os.Open(ownSpace()); err != nil {
		return err
	}
	// Nonblocking, so that closing it ends a read.
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(deviceName)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("a device of the lan: %w", err), unix.Close(fd))
	}
	h.wire = os.NewFile(uintptr(fd), "lan")
	for _, args := range []string{
		"link set lo up",
		"address add " + h.at.String() + "/24 dev " + deviceName,
		"link set " + deviceName + " txqueuelen 5000 up",
	} {
		if err := command(ctx, "ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

func ownSpace() string { return fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()) }

// inside runs do on a thread in the namespace of the host, for the sockets that it
// opens and the processes that it starts. If h is nil, it just runs do.
func (h *host) inside(do func() error) (err error) {
	if h == nil {
		return do()
	}
	runtime.LockOSThread()
	home, err := os.Open(ownSpace())
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("entering a host of the lan: %w", err)
	}
	defer home.Close()
	if err := unix.Setns(int(h.space.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("entering a host of the lan: %w", err)
	}
	defer func() {
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
			err = errors.Join(err, fmt.Errorf("leaving a host of the lan: %w", back))
			return // the thread cannot be reused and ends with its goroutine
		}
		runtime.UnlockOSThread()
	}()
	return do()
}

// close releases the host. Once plugged in, its device belongs to the lan.
func (h *host) close() error {
	var err error
	if h.space != nil {
		err = h.space.Close()
	}
	return err
}

// CanMakeNetworks returns the reason why this process cannot create a network namespace, or
// nil if it can.
func CanMakeNetworks(ctx context.Context) error {
	h, err := newHost(ctx, address{10, 0, 0, 1})
	if err != nil {
		return err
	}
	return errors.Join(h.wire.Close(), h.close())
}

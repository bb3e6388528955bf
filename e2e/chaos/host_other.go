//go:build !linux

package chaos

import (
	"context"
	"errors"
	"io"
)

var errNoNetworks = errors.New("a network of our own needs the namespaces of Linux")

// host is not supported here.
type host struct {
	at   address
	wire io.ReadWriteCloser
}

func newHost(context.Context, address) (*host, error) { return nil, errNoNetworks }

func (h *host) inside(do func() error) error { return do() }

func (h *host) close() error { return nil }

// CanMakeNetworks returns the reason why this process cannot create a network namespace.
func CanMakeNetworks(context.Context) error { return errNoNetworks }

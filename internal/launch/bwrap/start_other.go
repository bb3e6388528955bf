//go:build !linux || !(amd64 || arm64)

package bwrap

import (
	"context"

	"github.com/callyard/callyard/internal/launch"
)

const supported = false

type handle struct{}

func (handle) kill()  {}
func (handle) close() {}

// Start returns an error, because [Open] fails on this system.
func (m *Maker) Start(context.Context, Spec) (*Process, error) {
	return nil, launch.Unavailable("Bubblewrap sandboxes require Linux on amd64 or arm64.")
}

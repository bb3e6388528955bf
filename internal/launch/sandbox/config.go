package sandbox

import (
	"time"

	"github.com/callyard/callyard/internal/config"
)

// Config is what an operator may write about the container of a server: the docker
// section of a servers file. Zero values mean the defaults of [Resolve].
type Config = config.Docker

// Defaults of what a container may use.
const (
	DefaultMemory   = 128 << 20
	DefaultCPUs     = 0.5
	DefaultPIDs     = 64 // Node.js has a dozen threads before it does anything
	DefaultTmpfs    = 16 << 20
	DefaultFiles    = 256
	DefaultFileSize = 64 << 20
	DefaultTime     = 5 * time.Minute

	unlimited = -1
	mostPool  = 64
)

package sandbox

import (
	"time"

	"github.com/callyard/callyard/internal/config"
)

// Config holds the settings of a server's container: the docker section of a servers file. Zero values
// mean the defaults of [Resolve].
type Config = config.Docker

// Default limits of a container.
const (
	DefaultMemory   = 128 << 20
	DefaultCPUs     = 0.5
	DefaultPIDs     = 64 // Node.js starts a dozen threads before it does anything
	DefaultTmpfs    = 16 << 20
	DefaultFiles    = 256
	DefaultFileSize = 64 << 20
	DefaultTime     = 5 * time.Minute

	unlimited = -1
	mostPool  = 64
)

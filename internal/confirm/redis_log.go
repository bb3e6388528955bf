package confirm

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// LogRedis makes the Redis client write its messages to log instead of standard error. It
// affects every Redis client of the process and is not safe while one is in use: call it before
// creating the first.
func LogRedis(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ log *slog.Logger }

// normal holds the formats of messages about Sentinels that work.
var normal = []string{"sentinel: selected addr=", "sentinel: new master=", "sentinel: discovered new sentinel="}

// Printf logs a message of the client, which does not tell its level.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	level := slog.LevelWarn
	if slices.ContainsFunc(normal, func(begin string) bool { return strings.HasPrefix(format, begin) }) {
		level = slog.LevelInfo
	}
	if l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, "message of the Redis client", "text", fmt.Sprintf(format, v...))
	}
}

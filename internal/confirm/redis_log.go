package confirm

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogRedis has the Redis client write what it has to say to log, and not to standard
// error. It counts for every Redis client of the process and is not safe next to one
// that is in use: call it before the first is made.
func LogRedis(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ log *slog.Logger }

// Printf takes a line of the client.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelWarn) {
		l.log.WarnContext(ctx, "redis", "says", fmt.Sprintf(format, v...))
	}
}

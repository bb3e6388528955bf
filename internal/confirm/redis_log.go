package confirm

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogRedis makes the Redis client write its messages to log instead of standard error. It
// affects every Redis client of the process and is not safe while one is in use: call it before
// creating the first.
func LogRedis(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ log *slog.Logger }

// Printf logs a message of the client.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelWarn) {
		l.log.WarnContext(ctx, "message of the Redis client", "text", fmt.Sprintf(format, v...))
	}
}

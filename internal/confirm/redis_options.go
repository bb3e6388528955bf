package confirm

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/callyard/callyard/internal/kit/tlsfiles"
)

// RedisOptions configures the connection to Redis.
type RedisOptions struct {
	// Addresses holds host:port pairs or the path of a unix socket: the address of a
	// standalone server, or those of the Sentinels, or some of a Cluster.
	Addresses []string
	// Master is the name of the primary in Sentinel. If set, Addresses are those of Sentinels.
	Master string
	// Cluster reports whether Addresses are those of a Cluster. More than one address without
	// Master implies it.
	Cluster bool
	// DB is the database of a standalone server or behind Sentinel.
	DB int
	// Username and PasswordFile are the credentials. The file is read for each connection, so
	// that a new password takes effect without a restart.
	Username, PasswordFile                 string
	SentinelUsername, SentinelPasswordFile string
	// TLS is enabled if true or if a file is set. CAFile, CertFile and KeyFile are PEM files.
	TLS                       bool
	CAFile, CertFile, KeyFile string
	// Timeout limits each command and each dial (default 1 s).
	Timeout time.Duration
	// Now returns the time by which tokens expire. If nil, the system clock is used.
	Now func() time.Time
	// Log receives a message when Redis stops accepting tokens and when it accepts them again.
	// If nil, nothing is logged.
	Log *slog.Logger
}

// redisTimeout is the default of RedisOptions.Timeout.
const redisTimeout = time.Second

// ParseRedis parses the value of --redis: redis://[user@]host:port[/db], rediss:// for TLS,
// unix:///path of a socket, or host:port. The value never contains a password, which is read
// from a file.
func ParseRedis(address string) (RedisOptions, error) {
	if !strings.Contains(address, "://") {
		if address == "" {
			return RedisOptions{}, errors.New("the address of Redis is empty: write redis://host:6379")
		}
		return RedisOptions{Addresses: []string{address}}, nil
	}
	u, err := redis.ParseURL(address)
	if err != nil {
		// The parser's error repeats the address, which may contain a password.
		return RedisOptions{}, errors.New("the address of Redis is invalid: write redis://host:6379/0, rediss://host:6380 or unix:///path")
	}
	if u.Password != "" {
		return RedisOptions{}, errors.New("the address of Redis contains a password, which others can see: put the password into a file and set redis.password_file")
	}
	return RedisOptions{Addresses: []string{u.Addr}, DB: u.DB, Username: u.Username, TLS: u.TLSConfig != nil}, nil
}

// Client returns an unconnected client, for other data in the same Redis. The caller closes it.
func (o RedisOptions) Client() (redis.UniversalClient, error) {
	if len(o.Addresses) == 0 {
		return nil, errors.New("the address of Redis is not set")
	}
	timeout := cmp.Or(o.Timeout, redisTimeout)
	u := &redis.UniversalOptions{
		Addrs: o.Addresses, MasterName: o.Master, IsClusterMode: o.Cluster, DB: o.DB, ClientName: "callyard",
		// Every script is safe to retry: the attempt makes it idempotent.
		MaxRetries:  2,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		DialerRetries: 1, ContextTimeoutEnabled: true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		SentinelUsername:         o.SentinelUsername,
	}
	if o.PasswordFile != "" {
		if _, err := secretFile(o.PasswordFile); err != nil {
			return nil, err
		}
		u.CredentialsProviderContext = func(context.Context) (string, string, error) {
			password, err := secretFile(o.PasswordFile)
			return o.Username, password, err
		}
	} else {
		u.Username = o.Username
	}
	if o.SentinelPasswordFile != "" {
		password, err := secretFile(o.SentinelPasswordFile)
		if err != nil {
			return nil, err
		}
		u.SentinelPassword = password
	}
	var err error
	if u.TLSConfig, err = o.tls(); err != nil {
		return nil, err
	}
	return redis.NewUniversalClient(u), nil
}

func secretFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the password for Redis: %w", err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

func (o RedisOptions) tls() (*tls.Config, error) {
	if !o.TLS && o.CAFile == "" && o.CertFile == "" {
		return nil, nil
	}
	return tlsfiles.Client("Redis", o.CAFile, o.CertFile, o.KeyFile)
}

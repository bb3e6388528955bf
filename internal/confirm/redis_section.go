package confirm

import (
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/settings"
)

// CheckRedis returns the faults in the redis section that only its client can find. The paths
// are relative to the root of the file.
func CheckRedis(r settings.Redis) []config.Fault {
	if r.URL == "" || len(r.Addresses) > 0 {
		return nil
	}
	if _, err := ParseRedis(r.URL); err != nil {
		return []config.Fault{config.Faultf("redis.url", "%v.", err)}
	}
	return nil
}

// OptionsOf returns the options for the Redis connection, or nil if the section sets none.
func OptionsOf(r settings.Redis) *RedisOptions {
	o := RedisOptions{Addresses: r.Addresses}
	if r.URL != "" {
		parsed, err := ParseRedis(r.URL)
		if err != nil {
			return nil // CheckRedis has reported it
		}
		o = parsed
	}
	if len(o.Addresses) == 0 {
		return nil
	}
	o.Master, o.Cluster, o.TLS = r.Master, r.Cluster, o.TLS || r.TLS
	if r.Username != "" {
		o.Username = r.Username
	}
	o.PasswordFile, o.SentinelUsername, o.SentinelPasswordFile = r.PasswordFile, r.SentinelUsername, r.SentinelPasswordFile
	o.CAFile, o.CertFile, o.KeyFile = r.CAFile, r.CertFile, r.KeyFile
	return &o
}

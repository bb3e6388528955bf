package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// vaultLogin is the result of a login at Vault.
type vaultLogin struct {
	token     string
	until     time.Time     // time of the renewal or of the next login
	life      time.Duration // lifetime of the token at login
	renewable bool
}

// signIn returns a Vault token: that of the file, or of a login with the pod's service account or
// an AppRole. A login token is renewed after two thirds of its lifetime as long as Vault allows,
// and then replaced by another login. again means that the token was refused, so signIn logs in
// again.
func (v *vaultSecret) signIn(ctx context.Context, again bool) (string, error) {
	if v.c.KubernetesRole == "" && v.c.RoleID == "" {
		return readSecret(v.c.TokenFile)
	}
	l := &v.login
	if l.token != "" && !again {
		if time.Now().Before(l.until) || l.renewable && v.renew(ctx) == nil {
			return l.token, nil
		}
	}
	path, form, err := v.credentials()
	if err != nil {
		return "", err
	}
	*l = vaultLogin{}
	life, err := v.enter(ctx, path, "", form)
	l.life = life
	return l.token, err
}

// credentials returns the path and the form of the login. The files are read at each login, so that
// they can be replaced.
func (v *vaultSecret) credentials() (path string, form map[string]string, err error) {
	if v.c.RoleID == "" {
		account, err := readSecret(cmp.Or(v.c.TokenFile, serviceAccount))
		return "auth/kubernetes/login", map[string]string{"role": v.c.KubernetesRole, "jwt": account}, err
	}
	id := os.Getenv(v.c.SecretIDEnv)
	if v.c.SecretIDFile != "" {
		id, err = readSecret(v.c.SecretIDFile)
	} else if id == "" {
		err = fmt.Errorf("the environment variable %s is not set", v.c.SecretIDEnv)
	}
	return "auth/approle/login", map[string]string{"role_id": v.c.RoleID, "secret_id": id}, err
}

// errShort means that a token cannot be renewed for long, because its maximum lifetime is almost over.
var errShort = errors.New("the token of Vault ends soon")

// renew extends the lifetime of the token.
func (v *vaultSecret) renew(ctx context.Context) error {
	life, err := v.enter(ctx, "auth/token/renew-self", v.login.token, map[string]string{})
	if err == nil && life < v.login.life/2 {
		return errShort
	}
	return err
}

// enter logs in or renews, and keeps the resulting token.
func (v *vaultSecret) enter(ctx context.Context, path, token string, form map[string]string) (life time.Duration, err error) {
	text, err := json.Marshal(form)
	if err != nil {
		return 0, err
	}
	status, body, err := v.send(ctx, http.MethodPost, path, token, text)
	if err != nil {
		return 0, err
	}
	var a struct {
		Auth struct {
			Token     string `json:"client_token"`
			Lease     int64  `json:"lease_duration"` // in seconds
			Renewable bool   `json:"renewable"`
		} `json:"auth"`
	}
	if status != http.StatusOK || json.Unmarshal(body, &a) != nil || a.Auth.Token == "" {
		return 0, fmt.Errorf("the login at %s failed with HTTP status %d", path, status)
	}
	life = time.Duration(min(max(a.Auth.Lease, 1), 24*3600)) * time.Second
	v.login.token, v.login.until, v.login.renewable = a.Auth.Token, time.Now().Add(life*2/3), a.Auth.Renewable
	return life, nil
}

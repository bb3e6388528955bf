package approver

import (
	"net/url"
	"strings"

	"github.com/callyard/callyard/internal/approver/notify"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/settings"
)

// Check returns the faults in the approver section that only an approver can detect. The paths are
// relative to the root of the file.
func Check(s *settings.File) []config.Fault {
	faults := notify.Check(s.Approver.Notify)
	for i := range faults {
		faults[i].Path = "approver.notify." + faults[i].Path
	}
	for id, t := range s.Tenants {
		own := s.Approver.Notify
		own.URLs, own.Events = t.Notify.URLs, nil
		for _, f := range notify.Check(own) {
			if strings.HasPrefix(f.Path, "urls") {
				f.Path = "tenants." + string(id) + ".notify." + f.Path
				faults = append(faults, f)
			}
		}
	}
	faults = append(faults, checkAuthorization(s)...)
	faults = append(faults, credential.CheckKeyFiles(s.Credentials.KeyFile, s.Encryption.KeyFile)...)
	return append(faults, confirm.CheckRedis(s.Redis)...)
}

// redirectURL returns the redirect URI for sign-ins at the provider. address is the listen address.
func redirectURL(c *settings.Approver, public *url.URL, address string) (*url.URL, error) {
	if c.OIDC.RedirectURL != "" {
		return url.Parse(c.OIDC.RedirectURL)
	}
	if public == nil {
		public = &url.URL{Scheme: listen.Scheme(c.CertFile), Host: address}
	}
	return public.JoinPath(settings.CallbackPath), nil
}

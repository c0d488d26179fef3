package secrets

import (
	corepb "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlspb "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotd/pilotd/encodecache"
	"github.com/pilotd/pilotd/xdstype"
)

// entry returns the resource of a name made of an object; why not, if the object has not what is asked for.
func (a *Asked) entry(m *Material) (made, error) {
	out, msg := made{}, &tlspb.Secret{Name: a.Resource}
	switch a.Part {
	case Certificate:
		if m.noCert != nil {
			return out, m.noCert
		}
		c := &tlspb.TlsCertificate{CertificateChain: inline(m.certificate.chain), PrivateKey: inline(m.certificate.key)}
		if len(m.certificate.staple) > 0 {
			c.OcspStaple = inline(m.certificate.staple)
		}
		msg.Type, out.until = &tlspb.Secret_TlsCertificate{TlsCertificate: c}, m.certificate.until
	case Roots:
		if m.noRoots != nil {
			return out, m.noRoots
		}
		c := &tlspb.CertificateValidationContext{TrustedCa: inline(m.roots.certs)}
		if len(m.roots.revoked) > 0 {
			c.Crl = inline(m.roots.revoked)
		}
		msg.Type = &tlspb.Secret_ValidationContext{ValidationContext: c}
		out.until, out.lists = m.roots.until, m.roots.listsUntil
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
	if err != nil { // a name that is no UTF-8
		return out, errName
	}
	out.entry = encodecache.NewLeaf(xdstype.SecretURL, a.Resource, encodecache.NewFragment(b))
	return out, nil
}

func inline(b []byte) *corepb.DataSource {
	return &corepb.DataSource{Specifier: &corepb.DataSource_InlineBytes{InlineBytes: b}}
}

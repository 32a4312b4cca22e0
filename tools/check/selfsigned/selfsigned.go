// Package selfsigned makes certificates for tests of HTTPS.
package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A Certificate signs itself.
type Certificate struct {
	File, KeyFile string         // PEM
	Pool          *x509.CertPool // trusts it
}

// Write writes a certificate for a name or an address, which is valid for a day, to a folder.
func Write(dir, host string) (c Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(0, 0, 1), IsCA: true, BasicConstraintsValid: true}
	if ip := net.ParseIP(host); ip != nil {
		form.IPAddresses = []net.IP{ip}
	} else {
		form.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		return c, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return c, err
	}
	c = Certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), x509.NewCertPool()}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	c.Pool.AppendCertsFromPEM(text)
	if err := os.WriteFile(c.File, text, 0o600); err != nil {
		return c, err
	}
	return c, os.WriteFile(c.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
}

package nats

import "github.com/lockgateway/lockgateway/internal/settings"

// TLS has settings of encrypted connections.
type TLS = settings.TLS

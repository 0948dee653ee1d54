# What one does with a checkout. Everything needs Go alone; the rest is fetched.

GO       ?= go
FUZZTIME ?= 5s
LINT     := $(GO) tool -modfile=tools/go.mod golangci-lint

.PHONY: run build test lint fmt fuzz bench clean

run: ## serve locks on http://localhost:8080
	$(GO) run ./cmd/caddy run --config Caddyfile.example

build: ## build bin/caddy
	$(GO) build -trimpath -o bin/caddy ./cmd/caddy

test: ## run every test
	$(GO) test -race -timeout 10m ./...

lint: ## vet and lint every module
	$(GO) vet ./...
	cd bench && $(GO) vet ./...
	$(LINT) run ./...
	cd bench && $(GO) tool -modfile=../tools/go.mod golangci-lint run --config ../.golangci.yml ./...

fmt: ## format Go code and the example
	$(LINT) fmt
	$(GO) run ./cmd/caddy fmt --overwrite Caddyfile.example

fuzz: ## fuzz each target for FUZZTIME
	$(GO) test -run '^$$' -fuzz '^FuzzRequest$$' -fuzztime $(FUZZTIME) ./internal/lockhttp
	$(GO) test -run '^$$' -fuzz '^FuzzQuery$$' -fuzztime $(FUZZTIME) ./internal/lockhttp

bench: ## measure the engine, then HTTP against Caddy's own respond; minutes
	$(GO) test -run '^$$' -bench . -benchmem ./backends/memory
	cd bench && $(GO) run . http
	cd bench && $(GO) run . waiters

clean:
	rm -rf bin

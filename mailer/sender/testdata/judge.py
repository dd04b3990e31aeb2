# A third opinion on zones: what pyspf and dkimpy, which receivers use, find in them. A line of stdin is
# PORT ADDRESS DOMAIN SELECTOR..., and a line of stdout the verdict on SPF and on each key.
import sys

import dkim
import dns.resolver
import spf


def text(resolver):
    def ask(name, timeout=5):
        try:
            answers = resolver.resolve(name.decode().rstrip("."), "TXT")
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return None
        return b"".join(next(iter(answers)).strings)
    return ask


def key(name, ask):
    try:
        size = dkim.load_pk_from_dns(name.encode(), ask)[1]
        return "good" if size >= 1024 or size == 256 else "short"  # 256: of ed25519
    except dkim.NaClNotFoundError:
        return "good"  # of ed25519, for which a package is missing
    except Exception:
        return "bad"


for line in sys.stdin:
    port, address, domain, *selectors = line.split()
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers, resolver.port, resolver.lifetime = ["127.0.0.1"], int(port), 20
    dns.resolver.default_resolver = resolver
    verdicts = [spf.check2(i=address, s="x@" + domain, h=domain)[0]]
    verdicts += [key(s + "._domainkey." + domain + ".", text(resolver)) for s in selectors]
    print(*verdicts)

package flexitest

import (
	"fmt"
	"strings"
)

// seeds: evidence|kod|nazev|further fields. The order matters: relations point upwards.
const seeds = `mena|CZK|Česká koruna
mena|EUR|Euro
mena|USD|Americký dolar
stat|CZ|Česká republika
stat|SK|Slovensko
stat|DE|Německo
merna-jednotka|KS|Kus
merna-jednotka|HOD|Hodina
merna-jednotka|KG|Kilogram
stitek|VIP|Významný zákazník
stitek|ESHOP|Objednávka z e-shopu
stitek|KONTROLA|Ke kontrole
forma-uhrady|PREVOD|Převodem
forma-uhrady|HOTOVE|Hotově
forma-uhrady|KARTA|Kartou
sazba-dph|21|Základní sazba
sazba-dph|12|Snížená sazba
sazba-dph|0|Osvobozeno
stredisko|C|Centrála
cinnost|PRODEJ|Prodej
zakazka|Z2026-01|Zakázka 2026-01
bankovni-ucet|BANKOVNÍ ÚČET|Běžný účet
pokladna|POKLADNA KČ|Hlavní pokladna
sklad|SKLAD|Hlavní sklad
rada-faktury-vydane|VYDANÉ FAKTURY|Vydané faktury|prefix=VF1-
rada-faktury-vydane|DOBROPISY|Dobropisy|prefix=VD1-
rada-faktury-prijate|PŘIJATÉ FAKTURY|Přijaté faktury|prefix=PF1-
rada-zavazku|ZÁVAZKY|Ostatní závazky|prefix=OZ1-
rada-pohledavky|POHLEDÁVKY|Ostatní pohledávky|prefix=OP1-
rada-banka|BANKA|Banka|prefix=B+
rada-pokladni-pohyb|POKLADNA|Pokladna|prefix=P+
rada-interniho-dokladu|INTERNÍ DOKLADY|Interní doklady|prefix=ID1-
rada-objednavky-prijate|OBJEDNÁVKY|Přijaté objednávky|prefix=OBP-
rada-skladovy-pohyb|SKLAD|Skladové pohyby|prefix=S+
typ-faktury-vydane|FAKTURA|Faktura - daňový doklad|rada=VYDANÉ FAKTURY
typ-faktury-vydane|DOBROPIS|Opravný daňový doklad|rada=DOBROPISY
typ-faktury-vydane|ZÁLOHA|Zálohová faktura|rada=VYDANÉ FAKTURY
typ-faktury-prijate|FAKTURA|Přijatá faktura|rada=PŘIJATÉ FAKTURY
typ-faktury-prijate|DOBROPIS|Přijatý dobropis|rada=PŘIJATÉ FAKTURY
typ-zavazku|ZÁVAZEK|Ostatní závazek|rada=ZÁVAZKY
typ-pohledavky|POHLEDÁVKA|Ostatní pohledávka|rada=POHLEDÁVKY
typ-banka|STANDARD|Bankovní doklad|rada=BANKA
typ-pokladni-pohyb|STANDARD|Pokladní doklad|rada=POKLADNA
typ-interniho-dokladu|STANDARD|Interní doklad|rada=INTERNÍ DOKLADY
typ-objednavky-prijate|OBP|Objednávka přijatá|rada=OBJEDNÁVKY
typ-skladovy-pohyb|STANDARD|Skladový pohyb|rada=SKLAD
adresar|NOVAK|Novák a syn s.r.o.|ic=27074358;dic=CZ27074358;ulice=Dlouhá 12;mesto=Praha 1;psc=110 00;stat=code:CZ
adresar|SVOBODA|Svoboda trade a.s.|ic=25596641;dic=CZ25596641;ulice=Masarykova 7;mesto=Brno;psc=602 00;stat=code:CZ
adresar|DVORAK|Dvořák stavby s.r.o.|ic=45274649;dic=CZ45274649;ulice=Nádražní 3;mesto=Plzeň;psc=301 00;stat=code:CZ
adresar|PAPIR|Papírnictví U Kostela|ic=00006947;ulice=Náměstí 1;mesto=Tábor;psc=390 01;stat=code:CZ
cenik|PRACE|Práce technika|cenaZakl=850;typZasobyK=typZasoby.sluzba;mj1=code:HOD
cenik|KABEL5|Kabel síťový 5 m|cenaZakl=99.50;typZasobyK=typZasoby.zbozi;mj1=code:KS`

// seed fills the code lists that a document needs. The fields are what anyone could type, so a refusal is a fault of
// this package.
func (s *Server) seed() {
	user := s.opt.User
	s.mustType("uzivatel", map[string]any{"kod": user, "prijmeni": user})
	s.mustType("nastaveni", map[string]any{"nazFirmy": s.opt.CompanyName, "ic": "12345679", "dic": "CZ12345679"})
	for line := range strings.Lines(seeds) {
		p := strings.Split(strings.TrimSpace(line), "|")
		fields := map[string]any{"kod": p[1], "nazev": p[2]}
		if len(p) > 3 {
			for pair := range strings.SplitSeq(p[3], ";") {
				name, v, _ := strings.Cut(pair, "=")
				fields[name] = v
			}
		}
		s.mustType(p[0], fields)
	}
	s.store.changes = nil
	s.log.commits = map[string]int{}
}

func (s *Server) mustType(evidence string, fields map[string]any) {
	if s.Type(evidence, fields) == 0 {
		panic(fmt.Sprintf("flexitest: seed %s %v was refused", evidence, fields))
	}
}

package flexitest

// Bank, cash and internal documents share one table at the ERP, and these.
const fieldsInternal = `
cisDosle|string:40||Číslo došlé
varSym|string:30||Variabilní symbol
datVyst|date|MS|Vystaveno
duzpPuv|date||Datum zdaň. plnění
datUcto|date||Datum zaúčtování
ucetni|logic|R|Je účetní
zuctovano|logic|R|Zaúčtováno
vyloucitSaldo|logic||Vynechat ze salda
typUcOp|relation@predpis-zauctovani||Předpis zaúčtování
clenDph|relation@cleneni-dph||Řádky DPH
sparovano|logic|R|Spárováno
`

const fieldsBanka = `
typPohybuK|select:50|M|Typ pohybu|typPohybu.prijem typPohybu.vydej
typDokl|relation@typ-banka|M|Typ dokladu
banka|relation@bankovni-ucet|M|Bank.účet
rada|relation@rada-banka||Čís. řada
cisObj|string:2000||Ref. číslo
buc|string:255||Číslo bank. účtu
iban|string:255||IBAN
bic|string:255||BIC
specSym|string:255||Specifický symbol
konSym|relation@konst-symbol||Konstantní symbol
smerKod|relation:20@penezni-ustav|U|Kód banky
primUcet|relation:6@ucet|U|Účet banky
protiUcet|relation:6@ucet|U|Protiúčet
vypisCisDokl|string:50||Číslo dokladu banky
cisSouhrnne|string:30||Čís. výpisu
zapocet|logic||Zápočet
`

const fieldsPokladniPohyb = `
typPohybuK|select:50|M|Typ pohybu|typPohybu.prijem typPohybu.vydej
typDokl|relation@typ-pokladni-pohyb|M|Typ dokladu
pokladna|relation@pokladna|M|Pokladna
rada|relation@rada-pokladni-pohyb||Čís. řada
primUcet|relation:6@ucet|U|Účet pokladny
protiUcet|relation:6@ucet|U|Protiúčet
formaUhradyCis|relation@forma-uhrady||Forma úhrady
cisSouhrnne|string:30||Souhrnné číslo
metodaZaokrDoklK|select:50|M|Metoda zaokrouhlení|metodaZaokr.zklDph metodaZaokr.0sazba metodaZaokr.individ
vytvaretKorPol|logic|M|Korekce DPH
zdrojProSkl|logic|M|Zdroj pro sklad. doklady
`

const fieldsInterniDoklad = `
typDokl|relation@typ-interniho-dokladu|M|Typ dokladu
rada|relation@rada-interniho-dokladu||Čís. řada
cisObj|string:2000||Číslo objednávky
datObj|date||Objednáno
cisDodak|string:30||Dodací list
primUcet|relation:6@ucet|U|Účet základu MD
protiUcet|relation:6@ucet|U|Účet základu Dal
`

const fieldsObjednavkaPrijata = `
cisDosle|string:40||Číslo došlé
varSym|string:30||Variabilní symbol
cisSml|string:30||Číslo poptávky
datObj|date||Objednáno
cisDodak|string:30||Číslo nabídky
doprava|string||Doprava a vyskladnění
datVyst|date|MS|Datum vyst.
datTermin|date||Termín
datReal|date||Realizováno
uvodTxt|string||Úvodní text (tiskne se před položkami)
zavTxt|string||Závěrečný text (tiskne se za položkami)
slevaDokl|numeric:6.2||Sleva [%]
metodaZaokrDoklK|select:50|M|Metoda zaokrouhlení|metodaZaokr.zklDph metodaZaokr.0sazba metodaZaokr.individ
vytvaretKorPol|logic|M|Korekce DPH
typDokl|relation@typ-objednavky-prijate|M|Typ dokladu
rada|relation@rada-objednavky-prijate||Čís. řada
konSym|relation@konst-symbol||Konstantní symbol
bankovniUcet|relation@bankovni-ucet||Bankovní účet
formaDopravy|relation@forma-dopravy||Forma dopravy
formaUhradyCis|relation@forma-uhrady||Forma úhrady
postovniShodna|logic||Poštovní adresa je shodná se sídlem
faNazev|string:255||Pošt. jméno firmy
faUlice|string:255||Pošt. ulice
faMesto|string:255||Pošt. město
faPsc|string:255||Pošt. PSČ
`

const fieldsSkladovyPohyb = `
typPohybuK|select:50|M|Typ pohybu|typPohybu.prijem typPohybu.vydej
varSym|string:30||Variabilní symbol
cisObj|string:2000||Číslo objednávky
cisDodak|string:30||Dodací list
doprava|string||Doprava a vyskladnění
datVyst|date|MS|Datum vystavení
datUcto|date||Datum zaúčtování
uvodTxt|string||Úvodní text (tiskne se před položkami)
zavTxt|string||Závěrečný text (tiskne se za položkami)
sumOsv|numeric:15.2|R|Osvob., bez DPH [Kč]
sumOsvMen|numeric|R|Osvob., bez DPH [měna]
sumCelkem|numeric:15.2|SR|Celkem [Kč]
sumCelkemMen|numeric:15.2|SR|Celkem [měna]
ucetni|logic|R|Je účetní
zuctovano|logic|R|Zaúčtováno
typDokl|relation@typ-skladovy-pohyb|M|Typ dokladu
sklad|relation@sklad|M|Sklad
rada|relation@rada-skladovy-pohyb||Čís. řada
firma|relation@adresar|S|Firma
typUcOp|relation@predpis-zauctovani||Předpis zaúčtování
primUcet|relation:6@ucet|U|Účet skladu
protiUcet|relation:6@ucet|U|Protiúčet
zdrojProFak|logic|M|Zdroj pro faktury
skladCil|relation@sklad||Sklad cíl
`

const fieldsAdresar = `
id|integer|SR|ID
lastUpdate|datetime|SR|Poslední změna
createdDate|datetime|R|Datum vytvoření
kod|string:20|MUS|Zkratka
nazev|string:255|MS|Název
nazev2|string:255||Název - druhá řádka
poznam|string||Upozornění
popis|string||Popis
platiOd|integer||Platí od roku
platiDo|integer||Platí do roku
ulice|string:255|S|Ulice
mesto|string:255|S|Město
psc|string:255|S|PSČ
tel|string:255||Telefon
mobil|string:255||Mobil
fax|string:255||Fax
email|string:255||E-mail
www|string:255||WWW
stat|relation:3@stat|US|Stát
region|relation@region||Kraj
eanKod|string:20||EAN
ic|string:20|S|IČO
dic|string:20|S|DIČ
vatId|string:20|S|IČ DPH
postovniShodna|logic||Poštovní adresa je shodná se sídlem
faJmenoFirmy|string:255||Pošt. jméno firmy
faUlice|string:255||Pošt. ulice
faMesto|string:255||Pošt. město
faPsc|string:255||Pošt. PSČ
splatDny|integer||Splatnost [dny]
limitFak|numeric:12.2||Limit fakt.
platceDph|logic||Plátce DPH
slevaDokl|numeric:6.2||Sleva [%]
typVztahuK|select:50||Typ vztahu|typVztahu.odberDodav typVztahu.odberatel typVztahu.dodavatel typVztahu.vyrobce typVztahu.socialka typVztahu.zdravotka typVztahu.financniUrad typVztahu.vyrobna typVztahu.vsechno
skupFir|relation@skupina-firem||Skupina
stredisko|relation:20@stredisko|U|Středisko
zodpOsoba|relation:254@uzivatel|L|Zodpovědná osoba
formaUhradyCis|relation@forma-uhrady||Forma úhrady
canceled|logic||Zrušení
revize|integer||Revize
stitky|string||Štítky
pocetPriloh|integer|R|Přílohy
external-ids|relation@external-ids|S|external-ids
`

const fieldsCenik = `
id|integer|SR|ID
lastUpdate|datetime|SR|Poslední změna
createdDate|datetime|R|Datum vytvoření
kod|string:64|MUS|Kód/zkratka
nazev|string:255|MS|Název
nazevA|string:255||Název EN
poznam|string||Poznámka
popis|string||Popis
platiOd|integer||Platí od roku
platiDo|integer||Platí do roku
eanKod|string:20||EAN
kodPlu|string:20||Kód PLU
cenaZakl|numeric:19.6|S|Prodejní cena
cenaZaklBezDph|numeric:19.6|SR|Prodejní cena bez DPH
cenaZaklVcDph|numeric:19.6|SR|Prodejní cena včetně DPH
nakupCena|numeric:19.6||Nákupní cena
typCenyDphK|select:50||Typ ceny|typCeny.bezDph typCeny.sDph
typSzbDphK|select:50||Sazba DPH|typSzbDph.dphOsv typSzbDph.dphSniz typSzbDph.dphSniz2 typSzbDph.dphZakl
typZasobyK|select|M|Typ zásoby|typZasoby.zbozi typZasoby.material typZasoby.nedvyroba typZasoby.polotovar typZasoby.vyrobek typZasoby.zvire typZasoby.sluzba typZasoby.poplatek
typVypoctuHlidatMinK|select:50|M|Typ min. cen. rozdílu|typVypCeny.marze typVypCeny.prirazka
mj1|relation@merna-jednotka||MJ
skladove|logic||Skladové
skupZboz|relation@skupina-zbozi||Skupina zboží
stat|relation:3@stat|U|Stát
dodavatel|relation@adresar|U|Dodavatel
vyrobce|relation@adresar|U|Výrobce
stitky|string||Štítky
exportNaEshop|logic||Export na E-shop
hmotMj|numeric:19.6||Hmotnost (netto)
zaruka|integer||Záruka
external-ids|relation@external-ids|S|external-ids
`

// Code lists differ little; these fields are enough for relations to point at them.
const fieldsCodeList = `
id|integer|SR|ID
lastUpdate|datetime|SR|Poslední změna
kod|string:20|MUS|Zkratka
nazev|string:255|MS|Název
poznam|string||Poznámka
popis|string||Popis
platiOd|integer||Platí od roku
platiDo|integer||Platí do roku
external-ids|relation@external-ids|S|external-ids
`

// A document type names the series that its documents are numbered from.
const fieldsDocType = fieldsCodeList + `
rada|string:20||Čís. řada
`

// A series: the number is prefix, four digits, slash, year of the document date.
const fieldsSeries = fieldsCodeList + `
prefix|string:8||Prefix
`

// Users are the one code list that is not upper-cased.
const fieldsUser = `
id|integer|SR|ID
lastUpdate|datetime|SR|Poslední změna
kod|string:254|MLS|Uživatelské jméno
prijmeni|string:255|S|Příjmení
jmeno|string:255|S|Jméno
`

// Settings of the company: who it is, beyond the name in the address.
const fieldsSettings = `
id|integer|SR|ID
lastUpdate|datetime|SR|Poslední změna
nazFirmy|string:255|S|Název firmy
ic|string:20|S|IČO
dic|string:20|S|DIČ
`

// Rows of documents. They are read and written inside their document only.
const fieldsRow = `
id|integer|SR|ID
lastUpdate|datetime|SR|Poslední změna
kod|string:64|U|Kód
nazev|string:255|S|Název
poznam|string||Poznámka
cisRad|integer||Číslo řádku
typPolozkyK|select:50||Typ položky|typPolozky.obecny typPolozky.katalog typPolozky.ucetni typPolozky.text
mnozMj|numeric:19.6|S|Množství
cenaMj|numeric:19.6|S|Cena za MJ
szbDph|numeric:6.2||Sazba DPH [%]
typSzbDphK|select:50||Typ sazby DPH|typSzbDph.dphOsv typSzbDph.dphSniz typSzbDph.dphSniz2 typSzbDph.dphZakl
typCenyDphK|select:50||Typ ceny|typCeny.bezDph typCeny.sDph typCeny.bezDphZaokr
slevaPol|numeric:6.2||Sleva [%]
sumZkl|numeric:15.2|S|Základ [Kč]
sumDph|numeric:15.2|S|DPH [Kč]
sumCelkem|numeric:15.2|S|Celkem [Kč]
sumZklMen|numeric:15.2||Základ [měna]
sumDphMen|numeric:15.2||DPH [měna]
sumCelkemMen|numeric:15.2||Celkem [měna]
eanKod|string:20||EAN
ucetni|logic||Účetní
cenik|relation:64@cenik|U|Ceník
mj|relation@merna-jednotka||MJ
sklad|relation@sklad||Sklad
stredisko|relation:20@stredisko|U|Středisko
cinnost|relation@cinnost||Činnost
zakazka|relation:30@zakazka||Zakázka
typUcOp|relation@predpis-zauctovani||Předpis zaúčtování
zklMdUcet|relation:6@ucet|U|Účet MD
zklDalUcet|relation:6@ucet|U|Účet DAL
clenDph|relation@cleneni-dph||Řádky DPH
kopTypUcOp|logic||Kopírovat předpis zaúčtování
kopClenDph|logic||Kopírovat řádky DPH
objem|numeric:19.6||Objem
source|string:50||Zdroj
external-ids|relation@external-ids|S|external-ids
`

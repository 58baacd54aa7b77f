package flexitest

// Field tables are text constants, so that they cannot change while tests run in parallel. One line is one field:
//
//	name|type[:maxLength or digits.decimal][@evidence it points to]|flags|title[|allowed values]
//
// Flags: M mandatory (in the metadata: most are filled in by the server), R read-only, U upper-cased, S in the summary,
// L lower-cased.

// Every document has these, with equal flags in all evidences.
const fieldsDocument = `
id|integer|SR|ID
lastUpdate|datetime|SR|Poslední změna
createdDate|datetime|R|Datum vytvoření
updatedBy|relation:254@uzivatel|RL|Upravil
createdBy|relation:254@uzivatel|RL|Vytvořil
uzivatel|relation:254@uzivatel|RL|Uživatel
kod|string:20|MUS|Interní číslo
zamekK|select:50|R|Zámek|zamek.otevreno zamek.prohlednuto zamek.polozamceno zamek.zamceno
popis|string:255|S|Popis
poznam|string||Poznámka
sumZklCelkem|numeric:15.2|R|Základ celkem [Kč]
sumZklCelkemMen|numeric:15.2|R|Základ celkem [měna]
kurz|numeric:19.6||Kurz
kurzMnozstvi|numeric:19.6||Kurz. množství
nazFirmy|string:255||Název firmy nebo jméno osoby
ulice|string:255||Ulice
mesto|string:255||Město
psc|string:255||PSČ
eanKod|string:20||EAN
ic|string:20||IČO
dic|string:20||DIČ
pocetPriloh|integer|R|Přílohy
bezPolozek|logic||Bezpoložkový doklad
storno|logic|R|Storno
stitky|string||Štítky
mena|relation@mena|S|Měna
stat|relation:3@stat|U|Stát
region|relation@region||Kraj
stredisko|relation:20@stredisko|U|Středisko
cinnost|relation@cinnost||Činnost
zakazka|relation:30@zakazka||Zakázka
zodpOsoba|relation:254@uzivatel|L|Zodpovědná osoba
kontaktOsoba|relation@kontakt||Kontaktní osoba
kontaktJmeno|string:255||Kontaktní jméno
kontaktEmail|string:255||Kontaktní e-mail
kontaktTel|string:255||Kontaktní telefon
uuid|string:50|R|Uuid
source|string:50||Zdroj
external-ids|relation@external-ids|S|external-ids
`

// Sums by rate, in all documents but stock movements.
const fieldsSums = `
sumOsv|numeric:15.2||Osvob., bez DPH [Kč]
sumZklSniz|numeric:15.2||Základ DPH sníž. [Kč]
sumZklSniz2|numeric:15.2||Základ DPH 2. sníž. [Kč]
sumZklZakl|numeric:15.2||Základ DPH zákl. [Kč]
sumDphSniz|numeric:15.2||DPH snížená [Kč]
sumDphSniz2|numeric:15.2||DPH 2. snížená [Kč]
sumDphZakl|numeric:15.2||DPH základní [Kč]
sumDphCelkem|numeric:15.2|R|DPH celkem [Kč]
sumCelkSniz|numeric:15.2||Celkem vč. DPH - sníž. [Kč]
sumCelkSniz2|numeric:15.2||Celkem vč. DPH - 2. sníž. [Kč]
sumCelkZakl|numeric:15.2||Celkem vč. DPH - zákl. [Kč]
sumCelkem|numeric:15.2|S|Celkem [Kč]
sumOsvMen|numeric||Osvob., bez DPH [měna]
sumZklSnizMen|numeric:15.2||Základ DPH sníž. [měna]
sumZklSniz2Men|numeric:15.2||Základ DPH 2. sníž. [měna]
sumZklZaklMen|numeric:15.2||Základ DPH zákl. [měna]
sumDphZaklMen|numeric:15.2||DPH základní [měna]
sumDphSnizMen|numeric:15.2||DPH snížená [měna]
sumDphSniz2Men|numeric:15.2||DPH 2. snížená [měna]
sumDphCelkemMen|numeric:15.2|R|DPH celkem [měna]
sumCelkSnizMen|numeric:15.2||Celkem vč. DPH - sníž. [měna]
sumCelkSniz2Men|numeric:15.2||Celkem vč. DPH - 2. sníž. [měna]
sumCelkZaklMen|numeric:15.2||Celkem vč. DPH - zákl. [měna]
sumCelkemMen|numeric:15.2|S|Celkem [měna]
szbDphSniz|numeric:6.2||Snížená sazba DPH
szbDphSniz2|numeric:6.2||2. snížená sazba DPH
szbDphZakl|numeric:6.2||Základní sazba DPH
firma|relation:20@adresar|US|Firma
statDph|relation:3@stat-dph|U|Stát DPH
datSazbyDph|date||Datum sazeb DPH
`

// Invoices, receivables and payables share one table at the ERP, and these.
const fieldsInvoice = `
cisDosle|string:40||Číslo došlé
cisSml|string:30||Číslo smlouvy
cisObj|string:2000||Číslo objednávky
datObj|date||Objednáno
cisDodak|string:30||Dodací list
doprava|string||Doprava a vyskladnění
duzpPuv|date||Datum zdaň. plnění
duzpUcto|date||Uplatnit zdaň. plnění
datUhr|date|R|Datum úhrady
datTermin|date||Termín
datReal|date||Realizace
datUcto|date||Datum zaúčtování
buc|string:255||Číslo bank. účtu
iban|string:255||IBAN
bic|string:255||BIC
specSym|string:255||Specifický symbol
ucetni|logic|R|Je účetní
zuctovano|logic|R|Zaúčtováno
uzpTuzemsko|logic||Místo plnění tuzemsko
vyloucitSaldo|logic||Vynechat ze salda
konSym|relation@konst-symbol||Konst. sym.
bankovniUcet|relation@bankovni-ucet||Bankovní účet
typUcOp|relation@predpis-zauctovani||Předpis zaúčtování
clenDph|relation@cleneni-dph||Řádky DPH
clenKonVykDph|relation@cleneni-kontrolni-hlaseni||Řádek kontrolního hlášení DPH
smerKod|relation:20@penezni-ustav|U|Směr.kód
formaDopravy|relation@forma-dopravy||Forma dopravy
formaUhradyCis|relation@forma-uhrady||Forma úhrady
zbyvaUhradit|numeric|SR|Zbývá uhradit [Kč]
zbyvaUhraditMen|numeric|SR|Zbývá uhradit [měna]
juhSum|numeric|R|Již uhrazeno [Kč]
juhSumMen|numeric|R|Již uhrazeno [měna]
sumZalohy|numeric|SR|Zálohy
stavUhrK|select|S|Stav úhrady dokladu|stavUhr.castUhr stavUhr.uhrazeno stavUhr.uhrazenoRucne
`

const fieldsFakturaVydana = `
varSym|string:30|M|Variabilní symbol
datVyst|date|MS|Vystaveno
datSplat|date|S|Splatnost
uvodTxt|string||Úvodní text (tiskne se před položkami)
zavTxt|string||Závěrečný text (tiskne se za položkami)
slevaDokl|numeric:6.2||Sleva [%]
postovniShodna|logic||Poštovní adresa je shodná se sídlem
faNazev|string:255||Pošt. jméno firmy
faUlice|string:255||Pošt. ulice
faMesto|string:255||Pošt. město
faPsc|string:255||Pošt. PSČ
faStat|relation:3@stat|U|Pošt. stát
typDokl|relation@typ-faktury-vydane|M|Typ faktury
rada|relation@rada-faktury-vydane||Čís. řada
primUcet|relation:6@ucet|U|Účet MD
protiUcet|relation:6@ucet|U|Účet DAL
smlouva|relation:20@smlouva|U|Smlouva
metodaZaokrDoklK|select:50|M|Metoda zaokrouhlení|metodaZaokr.zklDph metodaZaokr.0sazba metodaZaokr.individ
vytvaretKorPol|logic|M|Korekce DPH
zaokrouhlitPoOdpoctu|logic|M|Zaokrouhlit po odpočtu
zdrojProSkl|logic|M|Zdroj pro sklad. doklady
dobropisovano|logic|M|Dobropisováno
stavMailK|select:50||Stav mailu|stavMail.neodesilat stavMail.odeslat stavMail.odeslano
hromFakt|logic||Hrom. fakturace
generovatSkl|logic|R|Generovat sklad. doklady
`

const fieldsFakturaPrijata = `
varSym|string:30||Variabilní symbol
datVyst|date|MS|Datum přijetí
datSplat|date|S|Splatnost
slevaDokl|numeric:6.2||Sleva [%]
typDokl|relation@typ-faktury-prijate|M|Typ faktury
rada|relation@rada-faktury-prijate||Čís. řada
primUcet|relation:6@ucet|U|Účet DAL
protiUcet|relation:6@ucet|U|Účet MD
banSpojDod|relation@adresar-bankovni-ucet||Účet dodavatele
zakazPlatba|logic||Zákaz proplacení
zdrojProSkl|logic|M|Zdroj pro sklad. doklady
dobropisovano|logic|M|Dobropisováno
hromFakt|logic||Hrom. fakturace
`

const fieldsZavazek = `
varSym|string:30|M|Variabilní symbol
datVyst|date|MS|Vystaveno
datSplat|date|MS|Splatnost
typDokl|relation@typ-zavazku|M|Typ závazku
rada|relation@rada-zavazku||Čís. řada
primUcet|relation:6@ucet|U|Účet DAL
protiUcet|relation:6@ucet|U|Účet MD
banSpojDod|relation@adresar-bankovni-ucet||Účet dodavatele
zakazPlatba|logic||Zákaz proplacení
`

const fieldsPohledavka = `
varSym|string:30|M|Variabilní symbol
datVyst|date|MS|Vystaveno
datSplat|date|S|Splatnost
typDokl|relation@typ-pohledavky|M|Typ pohl.
rada|relation@rada-pohledavky||Čís. řada
primUcet|relation:6@ucet|U|Účet MD
protiUcet|relation:6@ucet|U|Účet DAL
`
